"""The store on PostgreSQL, for many machines: the same lines as in a folder, in a database that several servers share."""
