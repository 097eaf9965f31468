import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from '@mantine/core'
import { shadesOf } from './shades.ts'

const ink: MantineColorsTuple = [
  '#eef1fd',
  '#dbe1f8',
  '#b4c0ee',
  '#8a9ce5',
  '#677ddd',
  '#5169d9',
  '#3f59d0',
  '#2f4fd0',
  '#2540b4',
  '#1a3197',
]

const theme = createTheme({
  primaryColor: 'ink',
  primaryShade: { light: 7, dark: 6 },
  colors: { ink },
  defaultRadius: 'sm',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  headings: {
    fontWeight: '650',
    sizes: { h1: { fontSize: '22px' }, h2: { fontSize: '16px' }, h3: { fontSize: '14px' } },
  },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Modal: { defaultProps: { classNames: { title: 'dialog-title' } } },
    // A menu that is opened gets the focus itself: Mantine's placeholder is not allowed inside a menu (axe).
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
  },
})

/** With the operator's colour instead of Postern's. White text has enough contrast on it in both schemes. */
export const themeOf = (color: string | null) =>
  color === null
    ? theme
    : { ...theme, colors: { ink: shadesOf(color) }, primaryShade: { light: 7, dark: 7 } as const }

/** Alerts use the badges' colours, because these have sufficient contrast. */
const alerts = {
  '--mantine-color-green-light': 'var(--postern-good-ground)',
  '--mantine-color-green-light-color': 'var(--postern-good)',
  '--mantine-color-yellow-light': 'var(--postern-warn-ground)',
  '--mantine-color-yellow-light-color': 'var(--postern-warn)',
  '--mantine-color-red-light': 'var(--postern-bad-ground)',
  '--mantine-color-red-light-color': 'var(--postern-bad)',
}

/** Mantine's grey text has too little contrast in both schemes (WCAG 2.2, 1.4.3). */
export const variables: CSSVariablesResolver = ({ colors }) => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5a6270',
    '--mantine-color-placeholder': '#6b7280',
    '--mantine-color-error': '#c01c28',
    // In dark mode, Mantine's own colour has sufficient contrast.
    '--mantine-color-red-outline': '#c01c28',
    ...alerts,
    '--postern-ground': '#f7f8fa',
    '--postern-line': '#e3e6eb',
    '--postern-hover': '#f1f3f8',
    '--postern-good': '#0b6e3b',
    '--postern-good-ground': '#dff5e8',
    '--postern-warn': '#7a4b00',
    '--postern-warn-ground': '#fdeecd',
    '--postern-bad': '#a4161f',
    '--postern-bad-ground': '#fde3e3',
    '--postern-calm': '#454d5c',
    '--postern-calm-ground': '#eceff4',
    '--postern-accepted': '#8493ad',
    '--postern-delivered': '#17804a',
    '--postern-bounced': '#b36b00',
    '--postern-complained': '#c01c28',
  },
  dark: {
    '--mantine-color-body': '#16181d',
    '--mantine-color-dimmed': '#a3abba',
    '--mantine-color-placeholder': '#8b93a3',
    '--mantine-color-error': '#ff8a8f',
    '--mantine-color-anchor': colors['ink'] === ink ? '#9fb0ff' : (colors['ink']?.[2] ?? '#9fb0ff'),
    ...alerts,
    '--postern-ground': '#111317',
    '--postern-line': '#2b2f38',
    '--postern-hover': '#20242c',
    '--postern-good': '#7be0a6',
    '--postern-good-ground': '#12361f',
    '--postern-warn': '#ffcf7a',
    '--postern-warn-ground': '#3d2b06',
    '--postern-bad': '#ff9ea2',
    '--postern-bad-ground': '#45161a',
    '--postern-calm': '#c3cad6',
    '--postern-calm-ground': '#2a2f39',
    '--postern-accepted': '#8b97ad',
    '--postern-delivered': '#4cc486',
    '--postern-bounced': '#e0a030',
    '--postern-complained': '#ff7b81',
  },
})
