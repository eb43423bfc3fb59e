import type { ComponentType } from 'preact'

/** A page of the console. Its code is loaded when it is first opened. */
export interface Page {
  /** First part of its location. */
  readonly name: string
  readonly title: string
  /** The letter after `g`. */
  readonly key: string
  /** Path of a 20 by 20 icon, drawn as a line. */
  readonly icon: string
  readonly load: () => Promise<ComponentType>
}

export const pages: readonly Page[] = [
  {
    name: 'overview',
    title: 'Overview',
    key: 'o',
    icon: 'M3 10h3m8-5h3M14 10h3m-3 5h3M6 10c4 0 4-5 8-5M6 10h8m-8 0c4 0 4 5 8 5',
    load: async () => (await import('../pages/overview/page.tsx')).OverviewPage,
  },
  {
    name: 'routes',
    title: 'Routes',
    key: 'r',
    icon: 'M4 5h7a3 3 0 0 1 0 6H8a3 3 0 0 0 0 6h8m-2-2 2 2-2 2',
    load: async () => (await import('../pages/routes/page.tsx')).RoutesPage,
  },
  {
    name: 'requests',
    title: 'Requests',
    key: 'q',
    icon: 'M3 5h14M3 10h14M3 15h9',
    load: async () => (await import('../pages/requests/page.tsx')).RequestsPage,
  },
  {
    name: 'config',
    title: 'Config',
    key: 'c',
    icon: 'm7 6-4 4 4 4m6-8 4 4-4 4m-2-10-2 12',
    load: async () => (await import('../pages/config/page.tsx')).ConfigPage,
  },
]
