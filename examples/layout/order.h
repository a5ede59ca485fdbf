/* An order as it grew over the years: a member was added where it seemed to belong. */
struct order {
    long id;
    char customer[40];
    char reference[16];
    long price;
    char item[48];
    unsigned char priority;
    long amount;
    char note[48];
    int clerk;
    long state;
    char address[48];
    int zip;
    long discount;
    char phone[24];
    long shipped;
};
