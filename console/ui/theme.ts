import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'theme'
const stored = (): Theme => {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    // The browser blocks storage.
    return 'system'
  }
}

/** The color scheme that the user chose; `system` follows the browser. */
export const theme = signal<Theme>(stored())

const prefersDark = globalThis.matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(prefersDark.matches)
prefersDark.addEventListener('change', ({ matches }) => (systemIsDark.value = matches))

export const isDark = signal(false)

effect(() => {
  isDark.value = theme.value === 'dark' || (theme.value === 'system' && systemIsDark.value)
  document.documentElement.dataset['theme'] = isDark.value ? 'dark' : 'light'
  try {
    localStorage.setItem(KEY, theme.value)
  } catch {
    // The choice lasts until the page is closed.
  }
})

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' }

export function switchTheme(): void {
  theme.value = NEXT[theme.value]
}
