"""The demo: real consumers of certificates, calls to them, and what certroll does when certificates change."""
