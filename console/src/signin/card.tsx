import { Anchor, Paper, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { useInstallation } from '../components/installation.ts'
import { Logo } from '../components/logo.tsx'
import { useWindowTitle } from '../components/page-head.tsx'
import classes from './sign-in.module.css'

/** A page without a session: the operator's name and logo, a title and a form. */
export function SignInCard({ title, children }: { title: string; children: ReactNode }) {
  useWindowTitle(3, title)
  return (
    <main className={classes.page}>
      <div className={classes.column}>
        <Paper withBorder p="xl">
          <Stack>
            <Brand />
            <Title order={1}>{title}</Title>
            {children}
          </Stack>
        </Paper>
        <Links />
      </div>
    </main>
  )
}

/** Reserves its height while it loads. */
function Brand() {
  return useInstallation().isPending ? <span className={classes.brand} /> : <Logo />
}

function Links() {
  const { data } = useInstallation()
  const support = data?.support_url ?? (data?.support_email ? `mailto:${data.support_email}` : null)
  const links = [
    { href: support, label: 'Support' },
    { href: data?.terms_url ?? null, label: 'Terms' },
    { href: data?.privacy_url ?? null, label: 'Privacy' },
  ].flatMap(({ href, label }) => (href === null ? [] : [{ href, label }]))
  if (links.length === 0) return null
  return (
    <Text size="sm" component="nav" aria-label="About this service" className={classes.links ?? ''}>
      {links.map(({ href, label }) => (
        <Anchor key={label} href={href} c="dimmed" underline="always">
          {label}
        </Anchor>
      ))}
    </Text>
  )
}
