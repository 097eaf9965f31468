/** The path under which this entry is served, without a slash at its end. It is set in vite.config.ts. */
export const basePath = import.meta.env.BASE_URL.replace(/\/$/, '')
