import { pages } from './pages.ts'
import { navigate } from '../ui/router.ts'

/** How long `g` waits for the letter of a page, milliseconds. */
const CHORD_MS = 1200

/** How long `/` waits for the search of the page that it opens, milliseconds. */
const SEARCH_MS = 3000

/** Installs the shortcuts of the console: `/` search (of the routes, if the page has none), `g` and a letter go to a page, `?` help. */
export function installShortcuts({ onHelp }: { readonly onHelp: () => void }): void {
  let isChord = false
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isEditing(event.composedPath()[0])) return
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
      event.preventDefault()
      if (focusSearch()) return
      navigate(['routes'])
      const observer = new MutationObserver(() => focusSearch() && observer.disconnect())
      observer.observe(document.body, { childList: true, subtree: true })
      setTimeout(() => observer.disconnect(), SEARCH_MS)
    } else if (event.key === '?') {
      event.preventDefault()
      onHelp()
    }
  })
}

/** Returns whether the page has a search. */
function focusSearch(): boolean {
  const search = document.querySelector<HTMLInputElement>('input[data-search]')
  search?.focus()
  search?.select()
  return search !== null
}

/** `target` is the innermost element of the event: an editor is in a shadow root. */
function isEditing(target: EventTarget | undefined): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}
