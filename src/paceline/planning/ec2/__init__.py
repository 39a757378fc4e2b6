"""EC2 in pure words: names, requests, answers, rules, prices. Nothing here speaks to anybody."""
