-- How many reports about a recipient were taken. Whoever receives a mail has its return path and can report about it as
-- often as they like; core/mail/feedback stops at a number. Not indexed, so that an update of it stays on its page.
alter table mail.recipients add column reports smallint not null default 0 check (reports >= 0);
