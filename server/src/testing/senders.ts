import assert from 'node:assert/strict'
import { Queue } from '../core/dispatch/queue.ts'
import type { TestApi } from './api.ts'
import { Client } from './client.ts'
import type { TestDatabase } from './database.ts'
import { fixtures } from './fixtures.ts'

/** Projects that can send, and the queue that their mail waits in, as a worker sees it. */
export function senders(api: TestApi, database: TestDatabase, admin: Client) {
  const make = fixtures(database, admin)

  async function makeSender() {
    const { id } = await make.makeProject()
    const domain = await make.makeDomain(id, { mta_provider: 'service', status: 'verified' })
    const { secret, resource } = await make.makeApiKey(id, { allowed_ips: [] })
    const program = new Client(api.url, secret, '/v1')

    /** Accepted; its id. */
    async function send(changes: object = {}): Promise<string> {
      const answer = await program.post('/messages', {
        from: `Shop <hello@${domain.name}>`,
        to: ['someone@example.net'],
        subject: 'Your order',
        text: 'It is on its way.',
        ...changes,
      })
      assert.equal(answer.status, 202, answer.text)
      return answer.body.id
    }
    return { id, path: `/projects/${id}`, domain, keyId: resource.id, secret, program, send }
  }

  /** The messages that a worker gets of a project when it asks for some. */
  async function claimedOf(projectId: number): Promise<string[]> {
    const queue = new Queue(api.context.cells.all[0].mail)
    await queue.look()
    const claims = await queue.claim({ free: 100, freeLarge: 100, for: () => 100 })
    return claims
      .filter(({ claimed }) => claimed.project_id === projectId)
      .map(({ claimed }) => claimed.message_id)
  }

  return { ...make, makeSender, claimedOf }
}

/** So long from now, as a request tells it. */
export const inDays = (days: number): string => new Date(Date.now() + days * 24 * 3600_000).toISOString()
