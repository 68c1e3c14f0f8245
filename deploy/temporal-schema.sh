#!/bin/sh
# Makes Temporal's two databases and brings their schemas up to the version of this image. Harmless to run again:
# what is there is left alone, so that it is also the schema part of an upgrade.
# Reads SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD, as temporal-sql-tool does.
set -eu
schema=${TEMPORAL_SCHEMA_DIR:-/etc/temporal/schema}/postgresql/v12
for database in temporal temporal_visibility; do
	folder=${database#temporal_} # temporal, visibility
	temporal-sql-tool --db "$database" create
	temporal-sql-tool --db "$database" setup-schema -v 0.0
	temporal-sql-tool --db "$database" update-schema -d "$schema/$folder/versioned"
done
