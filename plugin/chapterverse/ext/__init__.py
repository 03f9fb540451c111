"""The rooms: parts that some owners switch on. The core never imports them."""
