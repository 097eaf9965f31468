import type { Attacker } from './attack.ts'
import { Cap } from './cap.ts'
import { capValue } from './stage.ts'

/**
 * Creates as many endpoints for an event as the API allows, and more by SQL. The latter have another endpoint's secret,
 * which the worker cannot decrypt, so their webhooks fail as they would with a broken receiver.
 */
export async function makeManyEndpoints(attacker: Attacker, event: string, count: number): Promise<Cap> {
  const { stage, tenant } = attacker
  const at = `/projects/${tenant.projectId}/endpoints`
  const cap = new Cap(attacker, {
    name: 'max_endpoints',
    value: capValue,
    create: () =>
      attacker.ask(at, { body: { name: 'Events', url: 'https://hooks.example.com/', events: [event] } }),
    count: () => stage.count('control.endpoints where project_id = $1', tenant.projectId),
  })
  await cap.fill()
  await cap.exceed(count - capValue, async () => {
    await stage.query(
      `insert into control.endpoints (project_id, name, url, events, encrypted_secret, secret_hint)
       select project_id, name, url, events, encrypted_secret, secret_hint
         from (select * from control.endpoints where project_id = $1 limit 1) as one, generate_series(1, $2::int)`,
      [tenant.projectId, count - capValue],
    )
    // The API would reject this address.
    await stage.query('update control.endpoints set url = $2 where project_id = $1', [
      tenant.projectId,
      `https://127.0.0.1:${stage.receiver.port}/hook`,
    ])
    await stage.query('analyze control.endpoints')
  })
  return cap
}

/** Sends one request with this many small messages. */
export const sendBatch = (attacker: Attacker, mails: number) => {
  const messages = Array.from({ length: mails }, (_, number) => ({
    ...{ from: `shop@${attacker.tenant.domain}`, to: [`a${number}@attacked.test`] },
    ...{ subject: 'Your order', text: 'It is on its way.' },
  }))
  return attacker.ask('/messages/batch', { body: { messages } })
}
