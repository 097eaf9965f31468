-- What endpoints are told of a mail that came in is stored once for all its recipients, beside the mail itself.

-- JSON (UTF-8): the part of the data of `inbound.received` that all events of the mail share. Null: stored by an older
-- version, whose events have all of their data.
alter table mail.inbound_bodies add column event_data bytea compression lz4;

-- Of `inbound.received`: where the rest of its data is. Both are in partitions by day and are dropped after the same time.
alter table mail.events add column inbound_body_id uuid;
