import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type SesEventType, sesEvent } from '../../server/src/testing/peers/ses-events.ts'
import type { OutboundMail } from '../../server/src/testing/peers/ses-outbound.ts'
import { openSesPeer, type SesPeer, sesCredentials } from '../../server/src/testing/peers/ses-peer.ts'
import { openSnsPeer, publishSns, type SnsPeer } from '../../server/src/testing/peers/sns-peer.ts'

// The API asks for ten certificates a minute at most.
const betweenCertificatesMs = 6500

/** SES and SNS for one installation: accepts mail and reports it, with retries until the report is accepted. */
export class Amazon {
  readonly ses: SesPeer
  readonly sns: SnsPeer
  #toldAt = -betweenCertificatesMs

  private constructor(ses: SesPeer, sns: SnsPeer) {
    this.ses = ses
    this.sns = sns
  }

  static async open(): Promise<Amazon> {
    return new Amazon(await openSesPeer(), await openSnsPeer())
  }

  /** With both of them at the other end of a tap. */
  settings(ports: { ses: number; sns: number }): Record<string, string> {
    const { accessKeyId, secretAccessKey } = sesCredentials(this.ses.location.account)
    return {
      ...this.ses.settings,
      ...this.sns.settings,
      POSTERN_SES_ENDPOINT: `http://127.0.0.1:${ports.ses}`,
      POSTERN_SNS_ENDPOINT: `http://127.0.0.1:${ports.sns}`,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    }
  }

  /** Under a certificate of a new name each time, because one that is known is not asked for again. */
  async tell(apiUrl: string, mail: OutboundMail, types: readonly SesEventType[]): Promise<void> {
    await sleep(Math.max(0, this.#toldAt + betweenCertificatesMs - performance.now()))
    this.#toldAt = performance.now()
    const path = `/SimpleNotificationService-${randomUUID().replaceAll('-', '')}.pem`
    this.sns.serve(path, 200, this.sns.certificateOf() ?? '')
    for (const type of types) {
      const message = this.sns.notification(sesEvent(mail, type))
      // Where the certificate is, is not signed.
      const address = new URL(path, message['SigningCertURL']).href
      await publishSns(apiUrl, { ...message, SigningCertURL: address })
    }
  }

  async close(): Promise<void> {
    await this.ses.close()
    await this.sns.close()
  }
}
