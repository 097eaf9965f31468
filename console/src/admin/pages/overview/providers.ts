/** As in the settings of a domain. */
export const providerNames = {
  service: 'the shared mail servers',
  ses: 'Amazon SES',
  none: 'test keys',
} as const
