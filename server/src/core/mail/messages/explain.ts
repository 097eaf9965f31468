import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { errorCodes, PosternError } from '../../../platform/errors.ts'
import { nullable, oneOf } from '../../shared/wire.ts'
import { type Facts, findFacts, type SuppressionList } from './acceptance.sql.ts'
import { type ReadDraft, readDraft } from './draft.ts'
import { findSuppression, findUsed } from './explain.sql.ts'
import { Quota, storedBytes } from './quota.ts'
import { type SendingRules, sendingChecks } from './sending-checks.ts'

// Explains whether a short message from one address to another would be accepted, with the result of every check. The
// checks are those of acceptance (sending-checks.ts), on the same facts and in the same order. Nothing is locked, so the
// answer describes this moment.

const checkNames = [
  'project_lock',
  'subscription',
  'sender_domain',
  'provider',
  'message',
  'suppression',
  'quota',
] as const
type CheckName = (typeof checkNames)[number]

const CheckResult = Type.Object(
  {
    name: oneOf(checkNames),
    result: oneOf(['passed', 'failed', 'unknown'], {
      description: '`unknown`: depends on an earlier check that failed.',
    }),
    message: Type.String({ description: 'What was found and, for a failed check, what would change it.' }),
  },
  { additionalProperties: false },
)

export const Explanation = Type.Object(
  {
    project_id: Type.Integer(),
    outcome: oneOf(['accepted', 'suppressed', 'refused'], {
      description:
        'What sending a short message now would lead to. `suppressed`: it is accepted, but not sent to this recipient.',
    }),
    error: nullable(
      Type.Enum([...errorCodes], { type: 'string', description: 'The error code of the refusal.' }),
    ),
    checks: Type.Array(CheckResult, { description: 'Every check, in the order in which they are made.' }),
  },
  { title: 'Explanation', additionalProperties: false },
)

const Address = Type.String({ minLength: 1, maxLength: 320 })

/** The query parameters. */
export const ExplainedMessage = {
  from: { ...Address, description: 'The sender of the message.', examples: ['hello@example.com'] },
  to: { ...Address, description: 'Its only recipient.', examples: ['someone@example.net'] },
}

interface Checked {
  name: CheckName
  refusal: PosternError | undefined
  /** The check depends on something unknown. */
  isUnknown?: boolean
  passed: string
}

/**
 * `platformReason`: why the recipient is on the suppression list for all projects, if it is. Only for administrators.
 */
export async function explainSending(
  tx: ReadTx,
  projectId: number,
  { from, to }: { from: string; to: string },
  rules: SendingRules,
  platformReason?: string,
): Promise<Static<typeof Explanation>> {
  const read = readDraft({ from, to: [to], subject: '', text: '' }, Date.now())
  const [facts] = await findFacts(tx, [{ projectId, name: read.senderDomain ?? '' }])
  if (!facts) throw new PosternError('not_found', `There is no project ${projectId}.`)
  const list = 'draft' in read ? await suppressionOf(tx, projectId, read) : null
  const checks: Checked[] = [
    ...senderChecks(projectId, read, facts, rules),
    {
      name: 'message',
      refusal: 'fault' in read ? read.fault : undefined,
      passed: 'The addresses are valid.',
    },
  ]
  const quota = await quotaRefusal(tx, read, facts, list !== null, rules)
  const refusal = checks.find(({ refusal }) => refusal)?.refusal ?? quota
  const unread = 'fault' in read
  return {
    project_id: projectId,
    outcome: refusal ? 'refused' : list ? 'suppressed' : 'accepted',
    error: refusal?.code ?? null,
    checks: [
      ...checks.map(resultOf),
      list
        ? { name: 'suppression', result: 'failed', message: suppressionMessage(to, list, platformReason) }
        : resultOf({
            name: 'suppression',
            refusal: undefined,
            isUnknown: unread,
            passed: 'The recipient is not suppressed.',
          }),
      resultOf({
        name: 'quota',
        refusal: quota,
        isUnknown: unread,
        passed: 'The plan allows more messages.',
      }),
    ],
  }
}

function senderChecks(
  projectId: number,
  { senderDomain }: ReadDraft,
  facts: Facts,
  { providers }: SendingRules,
): Checked[] {
  const sender = { projectId, apiKey: null, userId: null }
  const passed: Record<(typeof sendingChecks)[number]['name'], string> = {
    project_lock: 'The project is not locked.',
    subscription:
      facts.subscription === null
        ? 'The project is not billed.'
        : `The subscription is "${facts.subscription}".`,
    sender_domain: `"${senderDomain}" is a verified domain of the project.`,
    provider: `The project may use the provider "${facts.provider}".`,
  }
  const isUnknown = { sender_domain: senderDomain === null, provider: facts.provider === null }
  return sendingChecks.map(({ name, refusal }) => ({
    name,
    refusal: refusal({ sender, senderDomain, facts, providers }),
    isUnknown: name in isUnknown && isUnknown[name as keyof typeof isUnknown],
    passed: passed[name],
  }))
}

function resultOf({ name, refusal, isUnknown = false, passed }: Checked): Static<typeof CheckResult> {
  if (refusal) return { name, result: 'failed', message: refusal.message }
  if (isUnknown) return { name, result: 'unknown', message: 'Not known until the other checks pass.' }
  return { name, result: 'passed', message: passed }
}

function suppressionMessage(to: string, list: SuppressionList, platformReason: string | undefined): string {
  const consequence = 'The message is accepted but not sent to this address.'
  if (list === 'project')
    return `${to} is suppressed after a bounce, a complaint or by the project. ${consequence} Delete the suppression if the recipient wants the mail.`
  return platformReason === undefined
    ? `${to} is suppressed for all projects by the operator of the service. ${consequence} Only the operator can change this.`
    : `${to} is on the platform-wide suppression list: ${platformReason.replace(/[.!?]$/, '')}. ${consequence} Delete it from that list if the recipient wants the mail.`
}

async function suppressionOf(
  tx: ReadTx,
  projectId: number,
  { draft }: Extract<ReadDraft, { draft: unknown }>,
): Promise<SuppressionList | null> {
  const [recipient] = draft.recipients
  return recipient ? findSuppression(tx, projectId, recipient.address) : null
}

/** Without a lock on the counters, another request may take the rest of the quota at the same time. */
async function quotaRefusal(
  tx: ReadTx,
  read: ReadDraft,
  facts: Facts,
  isSuppressed: boolean,
  { byteLimits }: SendingRules,
): Promise<PosternError | undefined> {
  if ('fault' in read) return undefined
  const mails = isSuppressed ? 0 : 1
  const quota = new Quota(await findUsed(tx, facts.project_id), facts, byteLimits)
  return quota.take(mails, storedBytes(read.draft, 1, mails > 0))
}
