/** An open dialog owns the keyboard and the focus. */
export const isDialogOpen = (): boolean => document.querySelector('[role="dialog"]') !== null
