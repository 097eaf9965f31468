/**
 * Mails with larger content have separate lanes and a separate limit (core/mail/dispatch/slots.ts). All smaller mails that
 * a worker sends at once fit into memory many times over.
 */
export const largeBytes = 1024 * 1024
