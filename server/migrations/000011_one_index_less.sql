-- Nobody asks for a project's events in the order of their ids: those of a message are found by its id, and one by its
-- own. Three events come with a mail, so this was three entries to write, to log and to keep for each.
drop index mail.events_shard_project_id_id_idx;
