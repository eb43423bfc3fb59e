import { pages } from './pages.ts'
import { navigate } from '../ui/router.ts'

/** How long `g` waits for the letter of a page, milliseconds. */
const CHORD_MS = 1200

/** Installs the shortcuts of the console: `/` search, `g` and a letter go to a page, `?` help. */
export function installShortcuts({ onHelp }: { readonly onHelp: () => void }): void {
  let isChord = false
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isEditing(event.target)) return
    if (isChord) {
      isChord = false
      const page = pages.find(({ key }) => key === event.key)
      if (page === undefined) return
      event.preventDefault()
      navigate([page.name])
    } else if (event.key === 'g') {
      isChord = true
      setTimeout(() => (isChord = false), CHORD_MS)
    } else if (event.key === '/') {
      const search = document.querySelector<HTMLInputElement>('input[data-search]')
      if (search === null) return
      event.preventDefault()
      search.focus()
      search.select()
    } else if (event.key === '?') {
      event.preventDefault()
      onHelp()
    }
  })
}

function isEditing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}
