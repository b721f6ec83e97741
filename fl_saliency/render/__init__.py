"""Pictures: attention over frames, colour maps, videos."""
