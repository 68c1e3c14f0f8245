#!/bin/sh
# Creates Temporal's two databases and upgrades their schemas to the version of this image. It can be run repeatedly,
# and is also the schema part of an upgrade.
# Reads SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD, as temporal-sql-tool does.
set -eu
schema=${TEMPORAL_SCHEMA_DIR:-/etc/temporal/schema}/postgresql/v12
for database in temporal temporal_visibility; do
	folder=${database#temporal_} # temporal, visibility
	temporal-sql-tool --db "$database" create
	temporal-sql-tool --db "$database" setup-schema -v 0.0
	temporal-sql-tool --db "$database" update-schema -d "$schema/$folder/versioned"
done
