#!/bin/sh
# Run once by the postgres image, on an empty volume: one role and database for precis, one role for Temporal,
# which makes its two databases itself. Passwords come from the environment and stay out of argument lists.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv precis_password POSTGRES_PRECIS_PASSWORD
\getenv temporal_password POSTGRES_TEMPORAL_PASSWORD
CREATE ROLE precis LOGIN PASSWORD :'precis_password';
CREATE DATABASE precis OWNER precis;
CREATE ROLE temporal LOGIN CREATEDB PASSWORD :'temporal_password';
SQL
