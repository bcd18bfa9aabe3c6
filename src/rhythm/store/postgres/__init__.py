"""The store on PostgreSQL: any number of processes, on any number of machines."""
