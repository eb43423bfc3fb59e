/**
 * The message of the user behind a last message of the assistant that the target rejects (vybestack/llxprt-code#3695). The response then is what a
 * prefilled one would be: the continuation only.
 */
export const CONTINUE = 'Continue your last message exactly where it ends. Respond with the continuation only.'

/** The name of a prefill among the parts that were left out. */
export const PREFILL = 'prefill'

/** Stands before a conversation that begins with a message of the assistant (langgenius/dify#12340). */
export const BEGIN = '(start of the conversation)'

/** Stands between results of tools and a message of the user (NousResearch/hermes-agent#84944). */
export const BRIDGE = 'I have the results.'
