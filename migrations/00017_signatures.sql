-- +goose Up

-- Signatures of seals with a key that the database does not have (audit.signing_key). A signature is of one seal's chain,
-- which commits to all seals before it, so that the last seal of each transaction is signed. They are in a table of their
-- own, since seals are append-only and may be signed later.
CREATE TABLE seal_signatures (
    cid bigint NOT NULL,
    n bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Ed25519 over the number and chain of the seal, see package seals.
    signature bytea NOT NULL,
    CONSTRAINT seal_signatures_pkey PRIMARY KEY (cid, n),
    CONSTRAINT seal_signatures_seal_fkey FOREIGN KEY (cid, n) REFERENCES seals (cid, n),
    CONSTRAINT seal_signatures_length CHECK (octet_length(signature) = 64)
);
