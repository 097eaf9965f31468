import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mailRows } from '../testing/fixtures/mail-rows.ts'
import { inDays, senders } from '../testing/fixtures/sending-projects.ts'
import { startApi } from '../testing/harness/api.ts'
import { signedIn } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'

/** `postern queue` as an operator runs it, and what a worker can claim afterwards. */
const database = await testDatabase()
const api = await startApi(database)
const { makeSender, claimedOf } = senders(api, database, await signedIn(api))
const { makeMail } = mailRows(database)
const [one, other] = [await makeSender(), await makeSender()]

const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-queue-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}
const queue = (...args: string[]) => callPostern(env, 'queue', ...args)
const asJson = async (...args: string[]) => {
  const { status, stdout, stderr } = await queue(...args, '--json')
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' }, args.join(' '))
  return JSON.parse(stdout)
}
const audited = () =>
  database.query(
    `select chain::int, actor_kind, operation, resource_id, reason, after from control.audit
      where operation like 'queue.%' order by id`,
  )

/** A message that was handed off to an MTA this many hours ago. */
async function handedOver(projectId: number, queueId: string, hours: number, status = 'sent'): Promise<void> {
  const { messageId } = await makeMail(projectId, { status })
  await database.query(
    `insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, finished_at)
     values ($1, 0, 1, $2, 'service', 'mta1', $3, 'sent', postern.now() - $4 * interval '1 hour')`,
    [messageId, projectId, queueId, hours],
  )
}

describe('postern queue', () => {
  test('rejects invalid arguments, including unknown projects', async () => {
    const wrong: [args: string[], message: RegExp][] = [
      [[], /Usage:\n {2}postern queue show/],
      [['hold', '--all'], /Missing option: --reason/],
      [['hold', '--reason', 'x'], /one of --all, --project and --provider/],
      [['hold', '--all', '--provider', 'ses', '--reason', 'x'], /one of --all, --project and --provider/],
      [['hold', '--provider', 'all', '--reason', 'x'], /must be service or ses/],
      [['look'], /Unknown subcommand "look" of `postern queue`\.\n\nUsage:/],
      [['sow'], /Did you mean "show"\?/],
      [['show', '--project', '999999'], /^There is no project 999999\.\n$/],
      [['release', '--project', '999999', '--reason', 'x'], /^There is no project 999999\.\n$/],
    ]
    await Promise.all(
      wrong.map(async ([args, message]) => {
        const { status, stderr } = await queue(...args)
        assert.equal(status, 2, args.join(' '))
        assert.match(stderr, message)
      }),
    )
    assert.deepEqual(await audited(), [])
  })

  test('show lists waiting mail by reason, and the queue ids of mail at MTAs', async () => {
    assert.match((await queue('show')).stdout, /^The queue is empty\.\n\nHanded over to an MTA .*: 0\.\n$/)
    await one.send()
    await one.send({ send_at: inDays(1) })
    await database.query(`insert into control.queue_restrictions (project_id, kind) values ($1, 'hold')`, [
      one.id,
    ])
    await handedOver(one.id, 'OLDER1', 2)
    await handedOver(one.id, 'NEWER1', 1)
    await handedOver(one.id, 'DONE1', 1, 'delivered')
    await handedOver(other.id, 'OTHERS1', 1)

    const { states, lanes, handed_over, holds } = await asJson('show', '--project', String(one.id))
    assert.deepEqual(holds, [])
    assert.deepEqual(
      states.map(({ state, mails }: { state: string; mails: number }) => [state, mails]),
      [
        ['ready', 1],
        ['scheduled', 1],
      ],
    )
    const [{ oldest_ready_at, project_name, ...lane }] = lanes
    assert.ok(oldest_ready_at !== null && project_name !== '')
    assert.deepEqual(lane, {
      ...{
        project_id: one.id,
        provider: 'service',
        ready: 1,
        scheduled: 1,
        deferred: 0,
        leased: 0,
        awaiting: 0,
      },
      waits_for: ['project_hold'],
    })
    assert.equal(handed_over.count, 2)
    assert.deepEqual(
      handed_over.mails.map(({ queue_id }: { queue_id: string }) => queue_id),
      ['NEWER1', 'OLDER1'],
    )
    const { stdout } = await queue('show', '--limit', '2')
    assert.match(stdout, /1 ready to send \(oldest due /)
    assert.match(stdout, /2 project \d+ \(.*\), provider service: project held/)
    assert.match(
      stdout,
      /awaiting a delivery report: 3\. Showing the newest 2; .*postsuper -h.*\n {2}OTHERS1 {2}mta1 .*\n {2}NEWER1 /s,
    )
    await database.query('delete from control.queue_restrictions')
  })

  test('hold stops workers for all mail, a project or a provider; release lets them continue', async () => {
    await other.send()
    const scopes: [scope: string[], chain: number, resource: string, heldOfOther: boolean][] = [
      [['--all'], 0, 'all', true],
      [['--provider', 'service'], 0, 'service', true],
      [['--provider', 'ses'], 0, 'ses', false],
      [['--project', String(other.id)], other.id, String(other.id), true],
    ]
    for (const [scope, chain, resource, isHeld] of scopes) {
      const before = (await audited()).length
      const reason = ['--reason', 'The MTA is listed']
      const held = await asJson('hold', ...scope, ...reason)
      assert.deepEqual([held.is_held, held.has_changed], [true, true])
      assert.ok(held.handed_over.mails.some(({ queue_id }: { queue_id: string }) => queue_id === 'OTHERS1'))
      assert.equal((await claimedOf(other.id)).length, isHeld ? 0 : 1, scope.join(' '))
      assert.match((await queue('release', ...scope, '--reason', 'It is not')).stdout, /^Released: /)
      assert.deepEqual((await audited()).slice(before), [
        {
          chain,
          actor_kind: 'shell',
          operation: 'queue.hold',
          resource_id: resource,
          reason: reason[1],
          after: { is_held: true },
        },
        {
          chain,
          actor_kind: 'shell',
          operation: 'queue.release',
          resource_id: resource,
          reason: 'It is not',
          after: { is_held: false },
        },
      ])
      // Returns what the worker claimed to the queue, for the next scope.
      await database.query(
        `update mail.dispatch set state = 'ready', leased_until = null where state = 'leased'`,
      )
    }
    assert.equal((await claimedOf(other.id)).length, 1, 'nothing is held')
    assert.match((await queue('release', '--all', '--reason', 'Once more')).stdout, /^Was not held: all mail/)
    assert.equal((await audited()).length, 8, 'a call that changes nothing writes no row')
  })
})
