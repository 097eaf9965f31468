import type { Mail } from '../providers/carrier.ts'

/** A mail as the worker hands it over. */
export const someMail = (change: Partial<Mail> = {}): Mail => ({
  envelope: { from: 'bounce-abc@bounces.example.com', to: 'bob@example.org' },
  dsn: { envid: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b.0.1' },
  raw: Buffer.from(
    'From: ada@example.com\r\nTo: bob@example.org\r\nSubject: Hello\r\n\r\nHello\r\n.\r\n..\r\n',
  ),
  needsUtf8: false,
  ...change,
})
