import { auditChecks } from './audit.ts'
import { cellChecks } from './cells.ts'
import { certificateCheck } from './certificate.ts'
import type { Check } from './check.ts'
import { databaseChecks } from './database.ts'
import { domainCheck } from './domains.ts'
import { issuerCheck } from './issuers.ts'
import { keyChecks } from './keys.ts'
import { mtaCheck } from './mta.ts'
import { nameChecks } from './names.ts'
import { portCheck } from './ports.ts'
import { publicChecks } from './public.ts'
import { queueChecks } from './queue.ts'
import { senderCheck } from './senders.ts'
import { sendingCheck } from './sending.ts'
import { signerCheck } from './signer.ts'

/** Every check that `postern doctor` runs, in report order. */
export const checks: readonly Check[] = [
  ...databaseChecks,
  ...cellChecks,
  ...keyChecks,
  ...publicChecks,
  issuerCheck,
  portCheck,
  certificateCheck,
  ...nameChecks,
  senderCheck,
  domainCheck,
  sendingCheck,
  mtaCheck,
  ...auditChecks,
  signerCheck,
  ...queueChecks,
]
