"""Views: everything that is made of finals. The one exit for results."""
