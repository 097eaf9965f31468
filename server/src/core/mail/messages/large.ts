/**
 * Messages whose content is larger than this have separate lanes and a separate limit
 * (core/mail/dispatch/slots.ts). All smaller messages that a worker sends concurrently easily fit into
 * memory.
 */
export const largeBytes = 1024 * 1024
