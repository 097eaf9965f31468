import { type Answer, type Attack, type Attacker, repeat } from './attack.ts'
import { Cap } from './cap.ts'
import { capValue } from './stage.ts'

/** H7: a rename that moves many routes holds the project's lock, and many requests wait for it. */
export function convoy({ routes }: { routes: number }): Attack {
  let cap: Cap
  let names = 0
  let renames = 0
  return {
    ...{ id: 'H7', name: 'convoy' },
    title: `renames of a domain with ${routes} routes, and ${waitingAtOnce} waiting requests`,
    async prepare(attacker) {
      const { stage, tenant } = attacker
      cap = new Cap(attacker, {
        name: 'max_routes',
        value: capValue,
        create: () => createRoute(attacker, { match: 'address', address: `new${++names}@${tenant.domain}` }),
        count: () => stage.count('control.routes where project_id = $1', tenant.projectId),
      })
      await cap.fill()
      await cap.exceed(routes - capValue, async () => {
        await stage.query(
          `insert into control.routes (project_id, domain_id, match, address, action)
           select $1, $2, 'address', 'address' || number || '@' || $3::text, 'drop'
             from generate_series(1, $4::int) as number`,
          [tenant.projectId, tenant.domainId, tenant.domain, routes - capValue],
        )
        await stage.query('analyze control.routes')
      })
    },
    async run(attacker, over) {
      await Promise.all([
        repeat(1, over, async () => {
          if (await rename(attacker, `renamed${++names}.example.org`)) renames++
        }),
        // A catch-all route can be requested regardless of the domain's current name.
        repeat(waitingAtOnce, over, () => createRoute(attacker, { match: 'catch_all', address: null })),
      ])
    },
    async check(attacker) {
      if (renames === 0) attacker.faults.push('no rename completed or timed out')
      await cap.requireRefusal()
    },
  }
}

const waitingAtOnce = 47

/** Returns true if the rename held the lock: it succeeded, or its transaction timed out. */
async function rename(attacker: Attacker, name: string): Promise<boolean> {
  const { tenant } = attacker
  const { status } = await attacker.ask(`/projects/${tenant.projectId}/domains/${tenant.domainId}`, {
    method: 'PATCH',
    body: { name, preserve_local_parts: true },
  })
  if (status === 200) tenant.domain = name
  return status === 200 || status === 503
}

function createRoute(attacker: Attacker, of: { match: string; address: string | null }): Promise<Answer> {
  const { projectId, domainId } = attacker.tenant
  return attacker.ask(`/projects/${projectId}/routing`, {
    body: { domain_id: domainId, ...of, action: 'drop', endpoint_id: null, forward_to: null },
  })
}
