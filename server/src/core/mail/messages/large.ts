/**
 * Mails whose content is longer wait in lanes of their own (core/mail/dispatch/slots.ts): all others of a worker together
 * fit into memory many times over.
 */
export const largeBytes = 1024 * 1024
