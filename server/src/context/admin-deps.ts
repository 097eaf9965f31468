import type { AdminDeps } from '../admin/operation.ts'
import { trustedKeysOf } from '../core/control/audit/keys.ts'
import { verpKeysOf } from '../core/mail/feedback/match-bounce.ts'
import type { Context } from './context.ts'

type Needed = 'config' | 'db' | 'cells' | 'vault' | 'domains' | 'endpoints' | 'orders' | 'sending'

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
}: Pick<Context, Needed>): AdminDeps => ({
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
