"""Pure: a spec and facts about hosts -> samples, run plans, command lines. Nothing is started."""
