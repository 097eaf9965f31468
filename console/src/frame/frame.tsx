import { AppShell, Burger, Group, Kbd, UnstyledButton } from '@mantine/core'
import { useDisclosure, useHotkeys, useLocalStorage, useMediaQuery } from '@mantine/hooks'
import { useNavigate, useRouterState } from '@tanstack/react-router'
import { lazy, type ReactNode, type Ref, Suspense, useEffect, useRef } from 'react'
import { moveBetweenRows, selectRow } from '../components/list-keys.ts'
import { Logo } from '../components/logo.tsx'
import { focusPageSearch, leavePageSearch } from '../components/page-search.ts'
import { useShortcutKeys, useShortcuts } from '../components/shortcuts.ts'
import { Announcer } from './announcer.tsx'
import classes from './frame.module.css'
import { Navigation, type SectionCounts, type SectionGroup } from './navigation.tsx'
import { paletteKeys } from './palette.tsx'

const ShortcutsDialog = lazy(() =>
  import('./shortcuts-dialog.tsx').then((module) => ({ default: module.ShortcutsDialog })),
)

/** The navigation covers the page. As in frame.module.css. */
const narrow = '(max-width: 47.99em)'

/**
 * The frame around all pages: the header, the navigation and the keyboard shortcuts. What it contains is decided by
 * the entry, such as the administrators' console.
 */
export function Frame({
  navigation,
  counts = {},
  place,
  account,
  openPalette,
  children,
}: {
  navigation: readonly SectionGroup[]
  counts?: SectionCounts
  /** Beside the logo: where the user is. */
  place?: ReactNode
  /** At the end of the header. */
  account: (openShortcuts: () => void) => ReactNode
  openPalette: () => void
  children: ReactNode
}) {
  const menu = useMenu()
  const [isHelpOpen, help] = useDisclosure()
  const [areKeysOn, setKeysOn] = useLocalStorage({
    key: 'postern-shortcuts',
    defaultValue: true,
    getInitialValueInEffect: false,
  })
  useShortcutKeys(areKeysOn)
  useFrameShortcuts(navigation, help.open)
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 212, breakpoint: 'sm', collapsed: { mobile: !menu.isOpen } }}
      padding={{ base: 'md', sm: 'xl' }}
      classNames={{ main: classes.main ?? '', navbar: classes.navbar ?? '' }}
    >
      <a href="#content" className={classes.skip}>
        Skip to content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <MenuButton ref={menu.button} isOpen={menu.isOpen} toggle={menu.toggle} counts={counts} />
            <span className={classes.logo}>
              <Logo />
            </span>
            {place}
          </Group>
          <UnstyledButton className={classes.search} onClick={openPalette}>
            <span>Jump to…</span>
            <Kbd size="xs" className={classes.shortcut ?? ''}>
              {paletteKeys}
            </Kbd>
          </UnstyledButton>
          <Group gap={0} wrap="nowrap">
            {account(help.open)}
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Main" data-closed={!menu.isOpen || undefined}>
        <Navigation groups={navigation} counts={counts} onSelect={menu.close} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} inert={menu.isCovering}>
        {children}
      </AppShell.Main>
      <Announcer />
      {isHelpOpen && (
        <Suspense>
          <ShortcutsDialog close={help.close} isOn={areKeysOn} setOn={setKeysOn} />
        </Suspense>
      )}
    </AppShell>
  )
}

/** The navigation of a narrow window, which a button opens. It closes when another page opens, and with Escape. */
function useMenu() {
  const [isOpen, { toggle, close }] = useDisclosure()
  const isNarrow = useMediaQuery(narrow) ?? false
  const button = useRef<HTMLButtonElement>(null)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: closes when the path changes
  useEffect(close, [path])
  const closeByKey = () => {
    if (!isOpen) return
    close()
    button.current?.focus()
  }
  useHotkeys([['Escape', closeByKey, { preventDefault: false }]])
  return { isOpen, isCovering: isOpen && isNarrow, toggle, close, button }
}

/** Says what needs attention, because the counts in the navigation are not visible. */
function MenuButton({
  ref,
  isOpen,
  toggle,
  counts,
}: {
  ref: Ref<HTMLButtonElement>
  isOpen: boolean
  toggle: () => void
  counts: SectionCounts
}) {
  const texts = Object.values(counts).flatMap((count) => (count && count.count > 0 ? count.text : []))
  return (
    <span className={classes.burger}>
      <Burger
        ref={ref}
        opened={isOpen}
        onClick={toggle}
        hiddenFrom="sm"
        size="sm"
        aria-expanded={isOpen}
        aria-label={['Menu', ...texts].join(', ')}
      />
      {texts.length > 0 && !isOpen && <span className={classes.dot} />}
    </span>
  )
}

/** The shortcuts that every page has. */
function useFrameShortcuts(navigation: readonly SectionGroup[], openHelp: () => void): void {
  const navigate = useNavigate()
  const sections = navigation.flatMap((group) => group.sections)
  useShortcuts([
    ...sections.map(({ to, label, key }) => ({
      ...{ keys: `g ${key}`, group: 'Go to', label, run: () => void navigate({ to }) },
    })),
    { keys: '/', group: 'Page', label: 'Search or filter', run: focusPageSearch },
    { keys: 'j', group: 'Lists', label: 'Next row', run: () => void moveBetweenRows(1) },
    { keys: 'k', group: 'Lists', label: 'Previous row', run: () => void moveBetweenRows(-1) },
    { keys: 'x', group: 'Lists', label: 'Select or deselect the row', run: selectRow },
    { keys: '?', group: 'Page', label: 'Show keyboard shortcuts', run: openHelp },
  ])
  useEffect(() => {
    document.addEventListener('keydown', leavePageSearch)
    return () => document.removeEventListener('keydown', leavePageSearch)
  }, [])
}
