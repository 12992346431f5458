//! Times as people and programs read them.

/// Milliseconds since 1970 began, as RFC 3339 in UTC: `2026-11-30T22:49:26.123Z`.
pub(super) fn rfc3339(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hours, minutes, seconds) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", in_day % 1000)
}

/// Year, month and day of a number of days since 1970 began. Years are counted from March, so that the odd day comes last.
fn date(days: u64) -> (u64, u64, u64) {
    // From the first of March of the year 0 on: 400 years are 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let (next_year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    (era * 400 + year + next_year, month, in_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), want);
        }
        assert!(rfc3339(u64::MAX).ends_with('Z'));
    }
}
