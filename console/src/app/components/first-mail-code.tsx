import { Group, SegmentedControl, Text } from '@mantine/core'
import { useState } from 'react'
import { Copy } from '../../components/copy.tsx'
import { type FirstMail, firstMailIn, type Language } from './first-mail.ts'
import classes from './first-mail-code.module.css'

const languages: { value: Language; label: string }[] = [
  { value: 'curl', label: 'curl' },
  { value: 'typescript', label: 'TypeScript' },
  { value: 'python', label: 'Python' },
]

/** Code that sends a first mail, ready to be pasted. */
export function FirstMailCode({
  mail,
  isMain = false,
}: {
  mail: FirstMail
  /** Whether copying the code is what to do on the page. */
  isMain?: boolean
}) {
  const [language, setLanguage] = useState<Language>('curl')
  const code = firstMailIn[language](mail, `${window.location.origin}/v1/messages`)
  return (
    <div className={classes.code}>
      <Group justify="space-between" gap="xs" p={6} pl={8} className={classes.head ?? ''}>
        <SegmentedControl
          size="xs"
          value={language}
          onChange={(chosen) => setLanguage(chosen as Language)}
          data={languages}
          aria-label="Language"
        />
        <Copy text={code} label="Copy code" {...(isMain && { variant: 'filled' })} />
      </Group>
      <pre>{code}</pre>
      {language === 'python' && (
        <Text size="xs" c="dimmed" p={8} pt={0}>
          Needs only the standard library.
        </Text>
      )}
    </div>
  )
}
