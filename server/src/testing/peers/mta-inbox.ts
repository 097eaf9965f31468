import { text } from 'node:stream/consumers'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { cleanUp } from '../harness/cleanup.ts'

/** The operator's MTA for the service's own messages. Accepts or rejects messages and returns the received ones. */
export interface MtaInbox {
  /** For POSTERN_MTA_HOSTS. */
  url: string
  mails: ReceivedMail[]
  /** Sets the reply for every recipient or for the specified ones. Null accepts them. */
  refuseWith(reply: number | null, only?: readonly string[]): void
}

export interface ReceivedMail {
  from: string
  to: string[]
  /** As received. */
  text: string
  /** The decoded parts. */
  plain: string
  html: string
}

/** The decoded parts of a message. */
export async function partsOf(raw: string | Buffer): Promise<Pick<ReceivedMail, 'plain' | 'html'>> {
  const { text: plain = '', html = '' } = await PostalMime.parse(raw)
  return { plain, html }
}

export async function startMtaInbox(): Promise<MtaInbox> {
  const mails: MtaInbox['mails'] = []
  let refusal: number | null = null
  let refused: readonly string[] | undefined
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo({ address }, _session, callback) {
      if (refusal === null || refused?.includes(address) === false) return callback()
      return callback(Object.assign(new Error('not here'), { responseCode: refusal }))
    },
    onData(stream, { envelope }, callback) {
      text(stream).then(async (raw) => {
        const from = envelope.mailFrom ? envelope.mailFrom.address : ''
        mails.push({
          from,
          to: envelope.rcptTo.map(({ address }) => address),
          text: raw,
          ...(await partsOf(raw)),
        })
        callback()
      }, callback)
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as { port: number }
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    refuseWith(reply, only) {
      refusal = reply
      refused = only
    },
  }
}
