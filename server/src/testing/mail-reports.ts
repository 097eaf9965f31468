import { readFileSync } from 'node:fs'
import { returnPathOf, type VerpKeys } from '../core/feedback/return-path.ts'
import type { TestMail } from './mail-rows.ts'

/**
 * Reports as they come. Those of Postfix are its own (3.7, Debian 12), word for word, with the names of test machines
 * replaced and gaps where the mail is named; the complaint is made as RFC 5965 says.
 */
export type ReportName =
  | 'postfix-relayed'
  | 'postfix-delayed'
  | 'postfix-unknown-user'
  | 'postfix-refused'
  | 'postfix-expired'
  | 'complaint'
  | 'vacation'

export interface Report {
  /** Where it is sent to. */
  returnPath: string
  raw: string
}

export function reportAbout(
  keys: VerpKeys,
  mail: TestMail,
  name: ReportName,
  changes: Record<string, string> = {},
): Report {
  const returnPath = returnPathOf(keys, { ...mail, attempt: 1 }, 'customer.example')
  const gaps: Record<string, string> = {
    'return-path': returnPath,
    ref: returnPath.replace(/@.*/, ''),
    recipient: mail.address,
    'message-id': mail.messageId,
    type: 'abuse',
    ...changes,
  }
  const text = readFileSync(new URL(`mail-reports/${name}.eml`, import.meta.url), 'utf8')
  const raw = text.replace(/\{([a-z-]+)\}/g, (_, gap: string) => gaps[gap] ?? gap).replaceAll('\n', '\r\n')
  return { returnPath, raw }
}
