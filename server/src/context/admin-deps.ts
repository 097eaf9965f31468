import type { AdminDeps } from '../admin/operation.ts'
import type { Config } from '../config/config.ts'
import { trustedKeysOf } from '../core/control/audit/keys.ts'
import type { DomainDeps } from '../core/control/domains/domains.ts'
import type { EndpointDeps } from '../core/control/endpoints/endpoints.ts'
import type { EndpointCommandDeps } from '../core/control/endpoints/test-and-replay.ts'
import type { Vault } from '../core/control/secrets/vault.ts'
import { verpKeysOf } from '../core/mail/feedback/match-bounce.ts'
import type { SendingRules } from '../core/mail/messages/sending-checks.ts'
import type { Cells } from '../platform/db/cells.ts'
import type { Db } from '../platform/db/db.ts'

/** The parts of the context that administrative operations need. */
interface Given {
  config: Config
  db: { admin: Db }
  cells: Cells
  vault: Vault
  domains: DomainDeps
  endpoints: EndpointDeps
  orders: EndpointCommandDeps
  sending: { rules: SendingRules }
}

/** For the administrative plane, and for the worker that performs bulk actions. */
export const adminDeps = ({
  config,
  db,
  cells,
  vault,
  domains,
  endpoints,
  orders,
  sending,
}: Given): AdminDeps => ({
  db: db.admin,
  mailDbFor: (projectId) => cells.of(projectId).admin,
  cells,
  returnPathKeys: verpKeysOf(config.masterKeys),
  vault,
  domains,
  endpoints,
  endpointCommands: orders,
  caps: config,
  sendingRules: sending.rules,
  audit: {
    keys: trustedKeysOf(config),
    checkpointFile: config.auditCheckpointFile,
    isFileFirst: config.auditPublicKeys.size > 0,
  },
})
