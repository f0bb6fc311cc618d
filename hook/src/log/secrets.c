#include "secrets.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* The same in Python is trace/run_info.py. */

/* Shorter words with digits are more often names of files and models than keys. */
enum { LEAST_TOKEN = 16 };

static const char *const endings[] = {"password", "passwd", "passphrase", "secret", "apikey"};
static const char *const whole_words[] = {"token", "key", "credential", "credentials"};
static const char *const prefixes[] = {"ghp_", "gho_", "ghu_",  "ghs_",  "ghr_", "github_pat_", "glpat-",
                                       "hf_",  "sk-",  "xoxb-", "xoxp-", "AKIA", "ASIA"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

struct copy {
    char *text;
    size_t length, size;
};

static void put(struct copy *copy, const char *text, size_t length)
{
    size_t room = copy->size - 1 - copy->length;
    if (length > room)
        length = room;
    memcpy(copy->text + copy->length, text, length);
    copy->length += length;
}

static void put_mask(struct copy *copy)
{
    put(copy, "***", 3);
}

static bool ends_in(const char *name, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    return length >= n && strncasecmp(name + length - n, ending, n) == 0;
}

/* Is this the name of an option or variable whose value no one else should see? */
static bool names_secret(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(endings); i++)
        if (ends_in(name, length, endings[i]))
            return true;
    for (size_t i = 0; i < COUNT(whole_words); i++) {
        size_t n = strlen(whole_words[i]);
        if (ends_in(name, length, whole_words[i]) && (length == n || !isalnum((unsigned char)name[length - n - 1])))
            return true;
    }
    return false;
}

static size_t run_of_token(const char *text, const char *end)
{
    size_t n = 0;
    while (text + n < end && (isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == '-'))
        n++;
    return n;
}

/* The length of a token that begins here, 0 if none does. */
static size_t token_at(const char *word, const char *at, const char *end)
{
    if (at > word && isalnum((unsigned char)at[-1]))
        return 0;
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if ((size_t)(end - at) < n || strncmp(at, prefixes[i], n) != 0)
            continue;
        size_t token_bytes = run_of_token(at + n, end);
        bool digit = false;
        for (size_t k = 0; k < token_bytes; k++)
            digit |= isdigit((unsigned char)at[n + k]) != 0;
        if (token_bytes >= LEAST_TOKEN && digit)
            return n + token_bytes;
    }
    return 0;
}

/* The length of name and password in front of a host, whose address begins behind "://"; 0 if there are none. */
static size_t credentials_at(const char *word, const char *at, const char *end)
{
    if (at - word < 3 || strncmp(at - 3, "://", 3) != 0)
        return 0;
    const char *last = NULL;
    for (const char *c = at; c < end && !strchr("/?# \t\n", *c); c++)
        if (*c == '@')
            last = c;
    if (!last)
        return 0;
    size_t length = (size_t)(last - at);
    return memchr(at, ':', length) || length >= LEAST_TOKEN ? length : 0;
}

static size_t bearer_at(const char *word, const char *at, const char *end)
{
    enum { MARK = 7 };
    return at - word >= MARK && strncasecmp(at - MARK, "bearer ", MARK) == 0 ? (size_t)(end - at) : 0;
}

/* The end of the secret that begins at `at`; `at` itself where none does. */
static const char *secret_at(const char *word, const char *at, const char *end)
{
    size_t longest = token_at(word, at, end);
    size_t others[] = {credentials_at(word, at, end), bearer_at(word, at, end)};
    for (size_t i = 0; i < COUNT(others); i++)
        if (others[i] > longest)
            longest = others[i];
    return at + longest;
}

/* All from `value` on is secret, unless that is NULL. Secrets are looked for in the word as it is, inside others, too:
   the name in an address may be a token, with a password behind it. Those that overlap or touch have one mask. */
static void put_word(struct copy *copy, const char *word, size_t length, const char *value)
{
    const char *end = word + length, *hidden = NULL;
    for (const char *c = word; c < end; c++) {
        const char *until = c == value ? end : secret_at(word, c, end);
        bool begins = until > c;
        if (begins && (!hidden || c > hidden))
            put_mask(copy);
        else if (!begins && (!hidden || c >= hidden))
            put(copy, c, 1);
        if (begins && (!hidden || until > hidden))
            hidden = until;
    }
    if (value == end && hidden != end)
        put_mask(copy); /* an empty value: not even that is reported */
}

size_t secrets_masked(char *text, size_t size, const char *words, size_t length)
{
    struct copy copy = {text, 0, size};
    bool next_is_secret = false;
    for (size_t at = 0; at < length;) {
        const char *word = words + at;
        size_t n = strnlen(word, length - at);
        const char *equals = memchr(word, '=', n);
        bool option = n && word[0] == '-';
        if (at)
            put(&copy, " ", 1);
        if (next_is_secret && n && !option) {
            put_mask(&copy);
        } else {
            bool named = equals && names_secret(word, (size_t)(equals - word));
            put_word(&copy, word, n, named ? equals + 1 : NULL);
        }
        next_is_secret = option && !equals && names_secret(word, n);
        at += n + 1;
    }
    text[copy.length] = '\0';
    return copy.length;
}
