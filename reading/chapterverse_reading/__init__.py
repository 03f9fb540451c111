"""The files of the reading model. The package `chapterverse` loads them; there is no code here."""
