"""Sources beyond the site, which the option `also` names: files, addresses and sitemaps, fetched at each build."""
