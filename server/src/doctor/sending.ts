import { type Check, failure, unlessFound, warning } from './check.ts'

/** Whether mail has a way out at all. */
export const sendingCheck: Check = {
  name: 'sending',
  async look({ settings: { mtaHosts, sesRegion, sesConfigurationSet, systemMailFrom } }) {
    const isSesHalf = sesRegion !== undefined && sesConfigurationSet === undefined
    const hasWay = mtaHosts.length > 0 || sesConfigurationSet !== undefined
    return unlessFound(
      [
        hasWay
          ? undefined
          : failure(
              'No mail can leave: neither POSTERN_MTA_HOSTS nor POSTERN_SES_CONFIGURATION_SET is set.',
              'Set POSTERN_MTA_HOSTS to your MTA, for example smtp://127.0.0.1:25, or set up Amazon SES.',
            ),
        isSesHalf
          ? warning(
              'Amazon SES is set up by half: domains are registered with it, and no mail is sent by it.',
              'Set POSTERN_SES_CONFIGURATION_SET and POSTERN_SES_TOPIC_ARNS, or unset POSTERN_SES_REGION and POSTERN_SES_ACCOUNT_ID.',
            )
          : undefined,
        systemMailFrom === undefined || mtaHosts.length === 0
          ? warning(
              'Postern mails nothing of its own: no invitations, no links to set a new password, no notices to owners; and no forward can be confirmed.',
              'Set POSTERN_SYSTEM_MAIL_FROM to an address of yours, and POSTERN_MTA_HOSTS.',
            )
          : undefined,
      ],
      'Mail has a way out, and Postern has an address to write from.',
    )
  },
}
