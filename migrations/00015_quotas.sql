-- +goose Up

-- What each tenant has stored, so that a quota is checked by reading one row. Triggers keep it right, whatever writes:
-- this build, an earlier one beside it, or a person. Writers wait while the content that is there is counted once.

CREATE TABLE tenant_usage (
    -- Bytes of messages, live state, notes, and the JSON of conversations.
    bytes bigint NOT NULL DEFAULT 0,
    -- Conversations whose content was not deleted.
    conversations bigint NOT NULL DEFAULT 0,
    tenant text NOT NULL,
    CONSTRAINT tenant_usage_pkey PRIMARY KEY (tenant),
    CONSTRAINT tenant_usage_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenants (id)
)
WITH (fillfactor = 50);

-- The changes of a transaction that has not ended. They are added to tenant_usage when it commits, so that the row of
-- the tenant is locked for that moment only. No row is ever committed, so nothing is lost when the server crashes.
CREATE UNLOGGED TABLE tenant_usage_changes (
    id bigint GENERATED ALWAYS AS IDENTITY,
    bytes bigint NOT NULL,
    conversations bigint NOT NULL,
    tenant text NOT NULL,
    CONSTRAINT tenant_usage_changes_pkey PRIMARY KEY (id)
);

-- precis.grown says that the transaction has stored more than it removed: only then a quota can refuse it.
-- +goose StatementBegin
CREATE FUNCTION tenant_usage_fold() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    change record;
BEGIN
    WITH removed AS (DELETE FROM tenant_usage_changes WHERE tenant = NEW.tenant RETURNING *)
    SELECT sum(bytes) AS bytes, sum(conversations) AS conversations INTO change FROM removed;
    IF change.bytes IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO tenant_usage AS u (tenant, bytes, conversations)
        VALUES (NEW.tenant, change.bytes, change.conversations)
        ON CONFLICT (tenant) DO UPDATE SET bytes = u.bytes + excluded.bytes,
            conversations = u.conversations + excluded.conversations;
    PERFORM set_config('precis.grown_bytes', change.bytes::text, true),
        set_config('precis.grown_conversations', change.conversations::text, true);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE CONSTRAINT TRIGGER tenant_usage_fold AFTER INSERT ON tenant_usage_changes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tenant_usage_fold();

-- +goose StatementBegin
CREATE FUNCTION messages_added_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenant_usage_changes (tenant, bytes, conversations)
        SELECT c.tenant, sum(octet_length(m.native)), 0 FROM added m JOIN conversations c USING (cid) GROUP BY c.tenant;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION messages_removed_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenant_usage_changes (tenant, bytes, conversations)
        SELECT c.tenant, -sum(octet_length(m.native)), 0 FROM removed m JOIN conversations c USING (cid)
        GROUP BY c.tenant;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION messages_changed_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenant_usage_changes (tenant, bytes, conversations)
        SELECT c.tenant, octet_length(NEW.native) - octet_length(OLD.native), 0 FROM conversations c
        WHERE c.cid = NEW.cid;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER messages_added_usage AFTER INSERT ON messages REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION messages_added_usage();

CREATE TRIGGER messages_removed_usage AFTER DELETE ON messages REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION messages_removed_usage();

CREATE TRIGGER messages_changed_usage AFTER UPDATE OF native ON messages
    FOR EACH ROW EXECUTE FUNCTION messages_changed_usage();

-- +goose StatementBegin
CREATE FUNCTION conversation_bytes(c conversations) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (coalesce(octet_length(c.system), 0) + coalesce(octet_length(c.tools), 0)
        + coalesce(octet_length(c.envelope), 0) + coalesce(octet_length(c.settings), 0)
        + coalesce(octet_length(c.metadata), 0))::bigint
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION conversations_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more bigint := 0;
    n bigint := 0;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        more := more - conversation_bytes(OLD);
        n := n - (OLD.content_deleted_at IS NULL)::integer;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        more := more + conversation_bytes(NEW);
        n := n + (NEW.content_deleted_at IS NULL)::integer;
    END IF;
    IF more <> 0 OR n <> 0 THEN
        INSERT INTO tenant_usage_changes (tenant, bytes, conversations)
            VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.tenant ELSE NEW.tenant END, more, n);
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER conversations_usage AFTER INSERT OR DELETE
    OR UPDATE OF system, tools, envelope, settings, metadata, content_deleted_at ON conversations
    FOR EACH ROW EXECUTE FUNCTION conversations_usage();

-- +goose StatementBegin
CREATE FUNCTION enrichments_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more bigint := 0;
    of bigint := CASE TG_OP WHEN 'DELETE' THEN OLD.cid ELSE NEW.cid END;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        more := more - octet_length(OLD.value) - coalesce(octet_length(OLD.source), 0);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        more := more + octet_length(NEW.value) + coalesce(octet_length(NEW.source), 0);
    END IF;
    INSERT INTO tenant_usage_changes (tenant, bytes, conversations)
        SELECT c.tenant, more, 0 FROM conversations c WHERE c.cid = of AND more <> 0;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER enrichments_usage AFTER INSERT OR UPDATE OR DELETE ON enrichments
    FOR EACH ROW EXECUTE FUNCTION enrichments_usage();

-- +goose StatementBegin
CREATE FUNCTION segments_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more bigint := 0;
    of bigint := CASE TG_OP WHEN 'DELETE' THEN OLD.cid ELSE NEW.cid END;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        more := more - octet_length(OLD.content);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        more := more + octet_length(NEW.content);
    END IF;
    INSERT INTO tenant_usage_changes (tenant, bytes, conversations)
        SELECT c.tenant, more, 0 FROM conversations c WHERE c.cid = of AND more <> 0;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER segments_usage AFTER INSERT OR UPDATE OF content OR DELETE ON segments
    FOR EACH ROW EXECUTE FUNCTION segments_usage();

-- octet_length reads no content that is stored out of line.
INSERT INTO tenant_usage (tenant, bytes, conversations)
SELECT tenant, sum(bytes), sum(conversations) FROM (
    SELECT c.tenant, conversation_bytes(c) AS bytes, (c.content_deleted_at IS NULL)::integer AS conversations
    FROM conversations c
    UNION ALL
    SELECT c.tenant, m.bytes, 0 FROM conversations c
    JOIN (SELECT cid, sum(octet_length(native)) AS bytes FROM messages GROUP BY cid) m USING (cid)
    UNION ALL
    SELECT c.tenant, octet_length(e.value) + coalesce(octet_length(e.source), 0), 0
    FROM enrichments e JOIN conversations c USING (cid)
    UNION ALL
    SELECT c.tenant, octet_length(s.content), 0 FROM segments s JOIN conversations c USING (cid)
) parts GROUP BY tenant;
