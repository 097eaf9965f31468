import { Button, Title } from '@mantine/core'
import { useState } from 'react'
import type { MailboxProviderFigures } from '../../api/operations.gen.ts'
import { type Column, Rows } from '../../components/list.tsx'
import { number } from '../../components/numbers.ts'
import { Rate, rateText } from './rate.tsx'

/** Names that are not the words of the id. */
const names: Record<string, string> = {
  microsoft: 'Microsoft (Outlook, Hotmail)',
  yahoo: 'Yahoo, AOL and AT&T',
  yahoo_japan: 'Yahoo! Japan',
  apple: 'Apple iCloud',
  gmx_webde: 'GMX and WEB.DE',
  t_online: 'T-Online',
  vodafone_de: 'Vodafone Germany',
  free_fr: 'Free',
  sfr: 'SFR',
  tim: 'TIM',
  kpn: 'KPN',
  bt: 'BT',
  talktalk: 'TalkTalk',
  wp: 'Wirtualna Polska',
  abv: 'ABV',
  mail_ru: 'Mail.ru',
  ukr_net: 'Ukr.net',
  uol: 'UOL',
  tencent: 'Tencent QQ',
  netease: 'NetEase',
  docomo: 'NTT Docomo',
  kddi: 'KDDI',
  other: 'Others',
}

const nameOf = (provider: string): string =>
  names[provider] ??
  provider
    .split('_')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join(' ')

type Row = MailboxProviderFigures & { id: string }

const columns: Column<Row>[] = [
  { title: 'Provider', cell: ({ mailbox_provider }) => nameOf(mailbox_provider) },
  { title: 'Sent', isNumber: true, cell: ({ sent }) => number(sent) },
  { title: 'Delivered', isNumber: true, cell: ({ delivery_rate }) => rateText(delivery_rate) },
  { title: 'Deferred', isNumber: true, isExtra: true, cell: ({ deferral_rate }) => rateText(deferral_rate) },
  { title: 'Bounced', isNumber: true, cell: ({ bounce_rate }) => <Rate kind="bounced" rate={bounce_rate} /> },
  { title: 'Failed', isNumber: true, isExtra: true, cell: ({ failure_rate }) => rateText(failure_rate) },
  {
    title: 'Complained',
    isNumber: true,
    isExtra: true,
    cell: ({ complaint_rate }) => <Rate kind="complained" rate={complaint_rate} />,
  },
]

const shownAtFirst = 8

/** Nothing is shown without mail. */
export function MailboxProviders({ figures, range }: { figures: MailboxProviderFigures[]; range: string }) {
  const [areAllShown, setAreAllShown] = useState(false)
  if (figures.length === 0) return null
  const shown = areAllShown ? figures : figures.slice(0, shownAtFirst)
  return (
    <section>
      <Title order={2} mb="sm">
        Mailbox providers, {range}
      </Title>
      <Rows
        label="Mailbox providers"
        rows={shown.map((figure) => ({ ...figure, id: figure.mailbox_provider }))}
        columns={columns}
      />
      {shown.length < figures.length && (
        <Button variant="subtle" size="compact-sm" mt="xs" onClick={() => setAreAllShown(true)}>
          Show all {figures.length}
        </Button>
      )}
    </section>
  )
}
