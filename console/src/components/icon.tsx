/**
 * The icons of the navigation, in a grid of 24. They are kept here because there are few: a library would add three
 * times as many bytes to the first page, and thousands of files to the installation.
 */
const paths = {
  activity: 'M3 12h4l3-7 4 14 3-7h4',
  audit: 'M6 3h9l4 4v14H6zM15 3v4h4M9.5 12h6M9.5 16h6',
  bulk: 'm12 3.5 8.5 4.5-8.5 4.5L3.5 8zM3.5 12l8.5 4.5 8.5-4.5M3.5 16l8.5 4.5 8.5-4.5',
  domain:
    'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM3.5 12h17M12 3.5c5 4.7 5 12.3 0 17-5-4.7-5-12.3 0-17z',
  endpoint:
    'M8.8 14.8a4.2 4.2 0 1 0 3.6 4.2h5.2M9.7 9.2a4.2 4.2 0 1 1 6.2.2l2.5 4.8M12.9 6.4 9.6 12.6M18 15a4 4 0 1 1-2.8 6.8',
  key: 'M15 4a5 5 0 1 1-4 8l-7.5 7.5V21H7v-2.5h2.5V16h2L12.6 13.4M16.2 7.8h.01',
  check: 'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM8.3 12.3l2.6 2.6 5-5.4',
  mail: 'M5 5h14a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2zM3.5 7.5 12 13.5l8.5-6',
  overview: 'M4 4h7v8H4zM15 4h5v4h-5zM15 12h5v8h-5zM4 16h7v4H4z',
  plan: 'M4 4h7.5l8.5 8.5-7.5 7.5L4 11.5zM8.3 8.3h.01',
  policy: 'm12 3 7.5 2.8V12c0 4.2-2.9 7.3-7.5 9-4.6-1.7-7.5-4.8-7.5-9V5.8zM9 12l2.2 2.2L15.2 10',
  project: 'M5 5h4.5l2.5 3h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z',
  route: 'M6 5.5a2 2 0 1 1 0 .01M6 8v3a4 4 0 0 0 4 4h8M14.5 11l4 4-4 4M6 8v12',
  start: 'M5 20V4M5 5h11l-2 4 2 4H5',
  send: 'M4 11.5 20.5 4 14 20.5l-3-6.5zM11 14l9.5-10',
  settings: 'M4 7h9M17 7h3M13 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M4 17h3M11 17h9M7 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0',
  suppression: 'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM6 6l12 12',
  trace: 'M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.2 15.2 20.5 20.5',
  user: 'M9 4.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM2.5 20c0-3.3 2.7-5.5 6.5-5.5s6.5 2.2 6.5 5.5M15.8 4.8a3.5 3.5 0 0 1 0 6.4M18 14.9c2.2.7 3.5 2.6 3.5 5.1',
} as const

export type IconName = keyof typeof paths

/** Always beside a text, so screen readers skip it. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.75"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  )
}
