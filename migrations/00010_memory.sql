-- +goose Up

-- The out-of-band memory. A segment is a range of the messages, which never change, so its text is not kept a second
-- time: it is written out from them whenever somebody reads it. What is kept is where it begins and ends, so that a
-- name means the same for ever, and what the index says of it.
ALTER TABLE segments
    -- A message that is larger than a segment goes on in the next one: the byte of its text where the segment begins
    -- in covers_from, and where it ends in covers_to; 0: whole.
    ADD COLUMN offset_from integer NOT NULL DEFAULT 0,
    ADD COLUMN offset_to integer NOT NULL DEFAULT 0,
    -- Bytes of the segment's text, 0: not known since a message in it was pruned, or a note.
    ADD COLUMN size integer NOT NULL DEFAULT 0,
    -- What the index says of the segment: tokens, times, first request, files.
    ADD COLUMN facts jsonb NOT NULL DEFAULT '{}',
    ADD CONSTRAINT segments_note_or_range CHECK (
        (covers_from = 0 AND covers_to = 0 AND marker IS NULL) OR (covers_from >= 1 AND covers_to >= covers_from)
    );

-- What a search finds: the text of messages and notes in pieces of a few kilobytes, with the words of each. It is filled
-- when somebody searches, and not by an append, which is to cost little; it can be thrown away at any time together with
-- conversations.search_seq. A search is always of one conversation, whose pieces the primary key finds: an index over the
-- words of all of them would be read for every tenant's hits, and be written to with every piece.
CREATE TABLE search_texts (
    cid bigint NOT NULL,
    -- The message, 0: a note.
    seq bigint NOT NULL,
    part integer NOT NULL,
    -- The byte of the whole text where the piece begins.
    start integer NOT NULL,
    note text NOT NULL DEFAULT '',
    body text COMPRESSION lz4 NOT NULL,
    -- Made by package search, which decides what a word is in any language.
    words tsvector COMPRESSION lz4 NOT NULL,
    CONSTRAINT search_texts_pkey PRIMARY KEY (cid, seq, note, part),
    CONSTRAINT search_texts_cid_fkey FOREIGN KEY (cid) REFERENCES conversations (cid)
);

ALTER TABLE conversations
    -- The last message whose text is in search_texts.
    ADD COLUMN search_seq bigint NOT NULL DEFAULT 0,
    -- When the files of the conversation's memory are to be looked at, NULL: nothing is new. Set by each marker and
    -- each note; whoever has a folder for them takes it.
    ADD COLUMN memory_due_at timestamptz;

CREATE INDEX conversations_memory_due_idx ON conversations (memory_due_at) WHERE memory_due_at IS NOT NULL;

-- A message changes in one case only: its content is pruned. Then no search finds it any more, and the files that show it
-- are written anew.
-- +goose StatementBegin
CREATE FUNCTION messages_forget_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- First, since it waits for whoever is making the text findable just now.
    UPDATE conversations SET memory_due_at = clock_timestamp() WHERE cid = OLD.cid;
    DELETE FROM search_texts WHERE cid = OLD.cid AND seq = OLD.seq;
    UPDATE segments SET size = 0 WHERE cid = OLD.cid AND OLD.seq BETWEEN covers_from AND covers_to AND size <> 0;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER messages_forget_text_row AFTER UPDATE ON messages
    FOR EACH ROW EXECUTE FUNCTION messages_forget_text();
