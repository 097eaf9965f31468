-- To which trace a message belongs (OpenTelemetry), so that whoever sends it, in another process, goes on with it: the id of
-- the trace and that of the span, 24 octets. Null where nobody records it, which is nearly always, and takes no room.
alter table mail.messages add column trace bytea;
