#!/bin/sh
# The postgres image runs this once, on an empty volume. It creates a role and a database for precis, and a role for
# Temporal, which creates its two databases itself. Passwords come from the environment and never are arguments.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv precis_password POSTGRES_PRECIS_PASSWORD
\getenv temporal_password POSTGRES_TEMPORAL_PASSWORD
CREATE ROLE precis LOGIN PASSWORD :'precis_password';
CREATE DATABASE precis OWNER precis;
CREATE ROLE temporal LOGIN CREATEDB PASSWORD :'temporal_password';
SQL
