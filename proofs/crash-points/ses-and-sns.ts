import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type SesEventType, sesEvent } from '../../server/src/testing/peers/ses-events.ts'
import type { OutboundMail } from '../../server/src/testing/peers/ses-outbound.ts'
import { openSesPeer, type SesPeer, sesCredentials } from '../../server/src/testing/peers/ses-peer.ts'
import { openSnsPeer, publishSns, type SnsPeer } from '../../server/src/testing/peers/sns-peer.ts'

// The API fetches at most ten certificates per minute.
const betweenCertificatesMs = 6500

/** SES and SNS for one installation: accepts mail and reports the results, retrying until each report is accepted. */
export class Amazon {
  readonly ses: SesPeer
  readonly sns: SnsPeer
  #publishedAt = -betweenCertificatesMs

  private constructor(ses: SesPeer, sns: SnsPeer) {
    this.ses = ses
    this.sns = sns
  }

  static async open(): Promise<Amazon> {
    return new Amazon(await openSesPeer(), await openSnsPeer())
  }

  /** Settings with both services behind a tapped proxy. */
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

  /** Uses a new certificate name each time, because certificates are cached by name. */
  async publishReports(apiUrl: string, mail: OutboundMail, types: readonly SesEventType[]): Promise<void> {
    await sleep(Math.max(0, this.#publishedAt + betweenCertificatesMs - performance.now()))
    this.#publishedAt = performance.now()
    const path = `/SimpleNotificationService-${randomUUID().replaceAll('-', '')}.pem`
    this.sns.serve(path, 200, this.sns.certificateOf() ?? '')
    for (const type of types) {
      const message = this.sns.notification(sesEvent(mail, type))
      // The signature does not cover the certificate URL.
      const address = new URL(path, message['SigningCertURL']).href
      await publishSns(apiUrl, { ...message, SigningCertURL: address })
    }
  }

  async close(): Promise<void> {
    await this.ses.close()
    await this.sns.close()
  }
}
