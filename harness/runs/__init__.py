"""Plans of replays, how they are carried out, and the folders of tables that they become."""
