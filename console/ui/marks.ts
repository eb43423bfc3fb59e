import { StateEffect, StateField } from '@codemirror/state'
import { Decoration, EditorView, type DecorationSet } from '@codemirror/view'

/** A part of the text to underline as wrong. An empty part is extended by one character. */
export interface Mark {
  readonly from: number
  readonly to: number
}

const setMarks = StateEffect.define<readonly Mark[]>()
const wrong = Decoration.mark({ class: 'cm-wrong' })

/** The extension that shows marks. */
export const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, { changes, effects, newDoc }) {
    let next = shown.map(changes)
    for (const effect of effects) {
      if (!effect.is(setMarks)) continue
      const ranges = effect.value.map(({ from, to }) => clamp(from, to, newDoc.length)).filter(({ from, to }) => from < to)
      next = Decoration.set(
        ranges.map(({ from, to }) => wrong.range(from, to)),
        true,
      )
    }
    return next
  },
  provide: (field) => EditorView.decorations.from(field),
})

export function showMarks(view: EditorView, list: readonly Mark[]): void {
  view.dispatch({ effects: setMarks.of(list) })
}

/** A place at the end of the text marks its last character. */
function clamp(from: number, to: number, length: number): Mark {
  const start = Math.max(0, Math.min(from, length - 1))
  return { from: start, to: Math.min(Math.max(to, start + 1), length) }
}
